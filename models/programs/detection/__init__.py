"""Detection post-processing: YOLOv3, SSD, YOLACT, FCOS and, beyond the usual set, RTMDet.

Each network appears as two imperative ONNX programs of the same mathematics:
Form L (`*_loop`) walks images and pyramid levels with Loop and sequences, Form U
(`*_unrolled`) writes the levels out by hand and builds tensors column by column.
"""
