/* The kernels for both element types. */
#define REAL float
#define SUFFIX _f32
#include "restricted/mean_field/_iteration_kernel.h"

#define REAL double
#define SUFFIX _f64
#include "restricted/mean_field/_iteration_kernel.h"
