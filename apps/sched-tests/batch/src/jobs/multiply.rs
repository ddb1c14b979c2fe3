//! A job that multiplies matrices of integers. With floating point the results of the architectures
//! would differ, and a kernel does without it.

use core::num::Wrapping;

use ndarray::{Array1, Array2};

use super::Numbers;

/// The number of rows and of columns of each matrix.
const N: usize = 20;

type Matrix = Array2<Wrapping<u64>>;
type Vector = Array1<Wrapping<u64>>;

/// Multiplies two new matrices each time.
pub struct Multiply(pub Numbers);

impl super::Work for Multiply {
    fn unit(&mut self) -> bool {
        let (a, b) = (matrix(&mut self.0), matrix(&mut self.0));
        let v = Vector::from_shape_simple_fn(N, || number(&mut self.0));
        is_product(&a.dot(&b), &a, &b, &v)
    }
}

fn matrix(numbers: &mut Numbers) -> Matrix {
    Matrix::from_shape_simple_fn((N, N), || number(numbers))
}

fn number(numbers: &mut Numbers) -> Wrapping<u64> {
    Wrapping(numbers.next().into())
}

/// Returns true if `product` passes for a·b in a check with `v` (Freivalds, 1977). A wrong product
/// of numbers modulo 2⁶⁴ passes for at most one random `v` in two.
fn is_product(product: &Matrix, a: &Matrix, b: &Matrix, v: &Vector) -> bool {
    product.dot(v) == a.dot(&b.dot(v))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_element_is_found_wherever_it_is() {
        let mut numbers = Numbers::new(1);
        let (a, b) = (matrix(&mut numbers), matrix(&mut numbers));
        let v = Vector::from_shape_simple_fn(N, || number(&mut numbers));
        let mut product = a.dot(&b);
        assert!(is_product(&product, &a, &b, &v));
        for at in 0..N * N {
            product[(at / N, at % N)] += 1;
            assert!(!is_product(&product, &a, &b, &v), "element {at}");
            product[(at / N, at % N)] -= 1;
        }
    }
}
