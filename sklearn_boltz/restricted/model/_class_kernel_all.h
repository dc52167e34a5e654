/* The kernels for both element types. */
#define REAL float
#define SUFFIX _f32
#include "restricted/model/_class_kernel.h"

#define REAL double
#define SUFFIX _f64
#include "restricted/model/_class_kernel.h"
