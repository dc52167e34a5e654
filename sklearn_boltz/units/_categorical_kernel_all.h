/* The kernels for both element types. */
#define REAL float
#define SUFFIX _f32
#define CATEGORICAL_NEAR 60
#include "units/_categorical_kernel.h"

#define REAL double
#define SUFFIX _f64
#define CATEGORICAL_NEAR 250
#include "units/_categorical_kernel.h"
