//! The way in: the exports of the world `framed`.

use std::cell::RefCell;

use tidegate_program::Executor;

use crate::{answer, arena, executor};

mod bindings {
    #![allow(missing_docs, unused_qualifications, unreachable_pub, reason = "generated from wit/transform.wit")]
    wit_bindgen::generate!({ path: "../../wit", world: "framed" });
    use super::Guest;
    export!(Guest);
}

thread_local! {
    static EXECUTOR: RefCell<Option<Executor>> = const { RefCell::new(None) };
}

struct Guest;

impl bindings::exports::tidegate::transform::frames::Guest for Guest {
    fn configure(config: Vec<u8>) -> Result<(), String> {
        let executor = executor(&config)?;
        drop(config);
        EXECUTOR.set(Some(executor));
        arena::keep();
        Ok(())
    }

    fn transform(frame: Vec<u8>) -> Vec<u8> {
        EXECUTOR
            .with_borrow_mut(|executor| {
                let executor = executor.as_mut()?;
                answer(executor, &frame).ok()
            })
            .unwrap_or_default()
    }
}
