/* The kernels for both element types. The rules give the moments to 1e-6 and to 1e-11. */
#include <math.h>
#include "_exp.h"
#include "_simd.h"

#define REAL float
#define SUFFIX _f32
#define ORDER 16
#define CUT 20
#include "units/_truncated_kernel.h"

#define REAL double
#define SUFFIX _f64
#define ORDER 28
#define CUT 32
#include "units/_truncated_kernel.h"
