//! The sandbox's own threads: guest code runs here and nowhere else.
//!
//! Work is a future that is pending only because guest code was interrupted after its slice of fuel. Between slices a thread
//! looks whether the work has been cancelled or has used up its time, and turns to the next lane. Lanes are served in turn, so
//! that one pipeline with much to do does not hold up another.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tidegate_api::{Error, Result, code};
use tokio::sync::oneshot;

/// How work ended.
pub(crate) enum Ended<T> {
    /// It is done.
    Done(T),
    /// It has used more than its budget of processor time and was dropped where it stood.
    OutOfTime,
}

pub(crate) struct Pool(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    ready: Condvar,
}

#[derive(Default)]
struct Queue {
    lanes: BTreeMap<u64, VecDeque<Box<dyn Work>>>,
    served: u64,
    closed: bool,
}

impl Pool {
    /// Starts the threads; they end when the pool is dropped.
    pub(crate) fn start(threads: usize) -> Result<Self> {
        let pool = Self(Arc::default());
        for index in 0..threads {
            let shared = pool.0.clone();
            let thread = std::thread::Builder::new().name(format!("tidegate-guest-{index}"));
            thread.spawn(move || serve(&shared)).map_err(|error| Error::new(&code::SANDBOX_FAILED, "start thread").because(error))?;
        }
        Ok(pool)
    }

    /// Runs `future` on a thread of the pool, for at most `budget` of processor time. Gives also what it used.
    ///
    /// Dropping what this returns cancels the work, at its next slice.
    pub(crate) async fn run<T, F>(&self, lane: u64, budget: Duration, future: F) -> Result<(Ended<T>, Duration)>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let (reply, ended) = oneshot::channel();
        let task = Task { future: Box::pin(future), reply: Some(reply), used: Duration::ZERO, budget };
        self.0.queue().push(lane, Box::new(task));
        self.0.ready.notify_one();
        ended.await.map_err(|_| Error::new(&code::INTERNAL, "run guest"))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.closed = true;
        queue.lanes.clear();
        self.0.ready.notify_all();
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn push(&mut self, lane: u64, work: Box<dyn Work>) {
        self.lanes.entry(lane).or_default().push_back(work);
    }

    /// The first work of the lane that comes after the one that was served last.
    fn pop(&mut self) -> Option<(u64, Box<dyn Work>)> {
        let after = self.lanes.range(self.served.saturating_add(1)..).next();
        let lane = *after.or_else(|| self.lanes.first_key_value())?.0;
        let waiting = self.lanes.get_mut(&lane)?;
        let work = waiting.pop_front()?;
        if waiting.is_empty() {
            self.lanes.remove(&lane);
        }
        self.served = lane;
        Some((lane, work))
    }
}

fn serve(shared: &Shared) {
    let mut clock = Clock::start();
    let mut unfinished = None;
    loop {
        let mut queue = shared.queue();
        if let Some((lane, work)) = unfinished.take() {
            queue.push(lane, work);
        }
        let (lane, mut work) = loop {
            if queue.closed {
                return;
            }
            if let Some(next) = queue.pop() {
                break next;
            }
            queue = shared.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
        };
        drop(queue);
        // A panic in one work must not take the thread from the others; its caller sees that no reply came.
        match catch_unwind(AssertUnwindSafe(|| work.slice(&mut clock))) {
            Ok(Progress::Unfinished) => unfinished = Some((lane, work)),
            Ok(Progress::Finished) | Err(_) => {}
        }
    }
}

enum Progress {
    Finished,
    Unfinished,
}

trait Work: Send {
    fn slice(&mut self, clock: &mut Clock) -> Progress;
}

struct Task<T> {
    future: Pin<Box<dyn Future<Output = T> + Send>>,
    reply: Option<oneshot::Sender<(Ended<T>, Duration)>>,
    used: Duration,
    budget: Duration,
}

impl<T: Send> Work for Task<T> {
    fn slice(&mut self, clock: &mut Clock) -> Progress {
        if self.reply.as_ref().is_none_or(oneshot::Sender::is_closed) {
            return Progress::Finished;
        }
        let polled = self.future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self.used += clock.lap();
        let ended = match polled {
            _ if self.used > self.budget => Ended::OutOfTime,
            Poll::Ready(value) => Ended::Done(value),
            Poll::Pending => return Progress::Unfinished,
        };
        if let Some(reply) = self.reply.take() {
            let _ = reply.send((ended, self.used));
        }
        Progress::Finished
    }
}

/// Processor time of this thread, between one lap and the next. A lap includes the few microseconds in which the thread took
/// the work from the queue; waiting takes no processor time.
struct Clock(Duration);

impl Clock {
    fn start() -> Self {
        Self(thread_time())
    }

    fn lap(&mut self) -> Duration {
        let now = thread_time();
        now.saturating_sub(std::mem::replace(&mut self.0, now))
    }
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
