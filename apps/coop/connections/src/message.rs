//! The messages: a matrix of 15 × 15 numbers, with the sender's identification.
//!
//! A request's matrix is a fixed one times the request's key. So its product with the server's matrix is the fixed
//! product times that key. The client can check all of the answer with a fifteenth of the multiplications that it
//! took.

/// Rows and columns of a matrix.
pub const SIZE: usize = 15;

/// A matrix, row by row. Numbers wrap around.
pub type Matrix = [u32; SIZE * SIZE];

/// The matrix of which each request is a multiple.
const BASE: Matrix = filled(1, 1);
/// The matrix that the server multiplies by.
pub const FACTOR: Matrix = filled(7, 3);
/// The answer to [`BASE`].
const PRODUCT: Matrix = multiply(&BASE, &FACTOR);

/// Returns a matrix of `first`, and each further entry more by `step`.
const fn filled(first: u32, step: u32) -> Matrix {
    let mut matrix = [0; SIZE * SIZE];
    let mut at = 0;
    while at < matrix.len() {
        matrix[at] = first + step * at as u32;
        at += 1;
    }
    matrix
}

/// Returns the product of two matrices: 3,375 multiplications.
pub const fn multiply(left: &Matrix, right: &Matrix) -> Matrix {
    let mut product = [0; SIZE * SIZE];
    let mut row = 0;
    while row < SIZE {
        let mut column = 0;
        while column < SIZE {
            let (mut sum, mut at) = (0u32, 0);
            while at < SIZE {
                let term = left[row * SIZE + at].wrapping_mul(right[at * SIZE + column]);
                sum = sum.wrapping_add(term);
                at += 1;
            }
            product[row * SIZE + column] = sum;
            column += 1;
        }
        row += 1;
    }
    product
}

/// Returns the key of a request: odd, so that no entry is lost.
const fn key(connection: usize, number: u32) -> u32 {
    ((connection as u32) << 16) ^ ((number << 1) | 1)
}

/// A request, or its answer, which differs in the matrix only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The time at which the request was due, in nanoseconds since boot.
    pub due_ns: u64,
    /// The number of the request within its connection, from 0.
    pub number: u32,
    key: u32,
    /// The matrix to multiply, or the product.
    pub matrix: Matrix,
}

impl Message {
    /// The content of a buffer before the first read.
    #[cfg(target_os = "none")]
    pub const EMPTY: Self = Self {
        due_ns: 0,
        number: 0,
        key: 0,
        matrix: [0; SIZE * SIZE],
    };

    /// Returns the request of this number of a connection.
    pub fn request(connection: usize, number: u32, due_ns: u64) -> Self {
        let key = key(connection, number);
        let mut request = Self {
            due_ns,
            number,
            key,
            matrix: BASE,
        };
        (request.matrix.iter_mut()).for_each(|entry| *entry = entry.wrapping_mul(key));
        request
    }

    /// Returns true if it is the right answer to the request of this number of a connection.
    pub fn is_answer_to(&self, connection: usize, number: u32) -> bool {
        let key = key(connection, number);
        let is_product = |(found, of_base): (&u32, &u32)| *found == of_base.wrapping_mul(key);
        (self.number, self.key) == (number, key) && self.matrix.iter().zip(&PRODUCT).all(is_product)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_is_that_of_matrices() {
        let mut unit = [0; SIZE * SIZE];
        (0..SIZE).for_each(|at| unit[at * SIZE + at] = 1);
        assert_eq!(multiply(&BASE, &unit), BASE);
        assert_eq!(multiply(&unit, &FACTOR), FACTOR);
        // The first row 1 to 15, the first column 7, 52, 97 and so on.
        let first: u32 = (0..15).map(|at| (at + 1) * (7 + 45 * at)).sum();
        assert_eq!(PRODUCT[0], first);
        let twice = multiply(&multiply(&BASE, &FACTOR), &FACTOR);
        assert_eq!(multiply(&BASE, &multiply(&FACTOR, &FACTOR)), twice);
    }

    #[test]
    fn only_the_right_answer_is_accepted() {
        let mut message = Message::request(1_023, 49, 5);
        assert!(!message.is_answer_to(1_023, 49), "it is the request still");
        message.matrix = multiply(&message.matrix, &FACTOR);
        assert!(message.is_answer_to(1_023, 49));
        assert!(!message.is_answer_to(1_023, 48) && !message.is_answer_to(1_022, 49));
        message.matrix[224] ^= 1;
        assert!(!message.is_answer_to(1_023, 49));
    }

    #[test]
    fn no_two_requests_are_alike() {
        let of = |connection, number| Message::request(connection, number, 0).matrix;
        assert_ne!(of(0, 1), of(1, 0));
        assert_ne!(of(3, 1), of(3, 2));
        assert_ne!(of(1_022, 4_999), of(1_023, 4_999));
    }
}
