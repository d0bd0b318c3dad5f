/* SPDX-License-Identifier: Apache-2.0 */
/* Says on standard error what a tool is doing when it takes longer than a second. */
#ifndef TSSA_TOOLS_PROGRESS_H
#define TSSA_TOOLS_PROGRESS_H

/* From now on the tool does `what` ("loading model.onnx"). The text is copied. */
void progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void progress_done(void);

/* Starts and stops watching. Without a thread to watch with, nothing is said. */
void progress_start(const char *tool);
void progress_stop(void);

#endif
