//! Reading primitives: bounded by the frame, never panicking.

use crate::FrameError;

/// What is left of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn error(&self, rule: &'static str) -> FrameError {
        FrameError { rule, bytes_left: self.0.len() }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let (head, rest) = self.0.split_first_chunk().ok_or(self.error("it ends too early"))?;
        self.0 = rest;
        Ok(*head)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, FrameError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, FrameError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, FrameError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], FrameError> {
        let length = self.u32()? as usize;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(self.error("a length reaches beyond its end"))?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, FrameError> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.error("a text is not UTF-8"))
    }

    pub(crate) fn version(&mut self) -> Result<(), FrameError> {
        if self.byte()? == crate::VERSION { Ok(()) } else { Err(self.error("its version is not 1")) }
    }

    /// How many items follow: each takes at least two bytes, so a larger number cannot be true.
    pub(crate) fn count(&mut self) -> Result<u32, FrameError> {
        let count = self.u32()?;
        if count == 0 || count > crate::MAX_RECORDS {
            return Err(self.error("it does not hold 1 to 4096 items"));
        }
        Ok(count)
    }

    pub(crate) fn end(&self) -> Result<(), FrameError> {
        if self.0.is_empty() { Ok(()) } else { Err(self.error("bytes follow its last item")) }
    }
}

/// Appends `bytes` with their length in front.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// A frame lives in a 32-bit memory: a longer field cannot be sent. The length is then one that no reader accepts.
pub(crate) fn put_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&encode_length(length));
}

pub(crate) fn encode_length(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}
