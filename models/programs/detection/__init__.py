"""The four computer-vision post-processing workloads: YOLOv3, SSD, YOLACT and FCOS.

Each network appears as two imperative ONNX programs of the same mathematics:
Form L (`*_loop`) walks images and pyramid levels with Loop and sequences, Form U
(`*_unrolled`) writes the levels out by hand and builds tensors column by column.
"""
