/* Block coordinate descent on a penalised quadratic function whose matrix is sparse.
 *
 * Parameters come in blocks, one after another; block k has those of starts[k] to
 * starts[k + 1] - 1. With one parameter a block this is the update of the lasso.
 */
#include <math.h>
#include <stddef.h>

/* The minimum along one block of  slope . d + curvature/2 |d|^2 + l1 |theta| + l2/2 |theta|^2;
 * returns the largest change, times the curvature. `room` is for the new values. A row of all
 * `size` entries is in order, and needs no columns. */
static double sparse_block(const double *values, const int *columns, const int *rows, int begin,
                           int end, double l1, double l2, double curvature, double *theta,
                           double *slope, double *room, int size)
{
    double square = 0, largest = 0;
    for (int a = begin; a < end; a++) {
        room[a - begin] = theta[a] - slope[a] / curvature;
        square += room[a - begin] * room[a - begin];
    }
    const double norm = sqrt(square);
    const double scale = norm * curvature > l1 ? (curvature - l1 / norm) / (curvature + l2) : 0;
    for (int a = begin; a < end; a++) {
        const double change = scale * room[a - begin] - theta[a];
        if (change == 0)
            continue;
        theta[a] += change;
        largest = fmax(largest, curvature * fabs(change));
        const double *own = values + rows[a];
        if (rows[a + 1] - rows[a] == size) {
            for (int b = 0; b < size; b++)
                slope[b] += change * own[b];
            continue;
        }
        for (int b = rows[a]; b < rows[a + 1]; b++)
            slope[columns[b]] += change * values[b];
    }
    return largest;
}

/* Sweeps over all blocks, until none changes by more than tol; returns the last change. */
static double sparse_descend(const double *values, const int *columns, const int *rows,
                             const int *starts, const double *l1, const double *l2,
                             const double *curvature, double *theta, double *slope, double *room,
                             ptrdiff_t n_blocks, double tol, int max_sweeps)
{
    const int size = starts[n_blocks];
    double largest = INFINITY;
    for (int sweep = 0; sweep < max_sweeps && largest > tol; sweep++) {
        largest = 0;
        for (ptrdiff_t k = 0; k < n_blocks; k++)
            largest = fmax(largest, sparse_block(values, columns, rows, starts[k], starts[k + 1],
                                                 l1[k], l2[k], curvature[k], theta, slope, room,
                                                 size));
    }
    return largest;
}
