//! Why a change cannot be.

/// A poison on its way out: a stable kind, and a reason that names paths, limits and sizes, never a value.
#[derive(Debug)]
pub(crate) struct Poison {
    pub(crate) kind: &'static str,
    pub(crate) reason: String,
}

/// Boxed, so that the way without poison stays light.
pub(crate) type Outcome<T> = Result<T, Box<Poison>>;

#[cold]
pub(crate) fn poison(kind: &'static str, reason: String) -> Box<Poison> {
    Box::new(Poison { kind, reason })
}
