// The exported object in a Rust program, with rustc alone and no crates.
//
//   python export.py
//   rustc extern_c.rs -C link-arg=scale.o -L $(tvm-ffi-config --libdir) -l tvm_ffi \
//     -C link-arg=-Wl,-rpath,$(tvm-ffi-config --libdir)
use std::ffi::c_void;
use std::ptr::null_mut;

#[repr(C)]
#[derive(Clone, Copy)]
struct Any {
    type_index: i32,
    padding: u32,
    payload: u64,
}

#[repr(C)]
struct DLTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Bytes {
    data: *const u8,
    size: usize,
}

// The start of an error object: a header of 24 bytes, then kind and message.
#[repr(C)]
struct Error {
    header: [u64; 3],
    kind: Bytes,
    message: Bytes,
}

const NONE: i32 = 0;
const FLOAT: i32 = 3;
const DLTENSOR_PTR: i32 = 7;

extern "C" {
    fn __tvm_ffi_scale(handle: *mut c_void, args: *const Any, num_args: i32, result: *mut Any) -> i32;
    fn TVMFFIErrorMoveFromRaised(result: *mut *mut Error);
    fn TVMFFIObjectDecRef(object: *mut Error) -> i32;
}

fn tensor(values: &mut [f32], shape: &mut [i64; 1], strides: &mut [i64; 1]) -> DLTensor {
    DLTensor {
        data: values.as_mut_ptr().cast(),
        device_type: 1,
        device_id: 0,
        ndim: 1,
        code: 2,
        bits: 32,
        lanes: 1,
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    }
}

fn text(part: Bytes) -> String {
    let bytes = unsafe { std::slice::from_raw_parts(part.data, part.size) };
    String::from_utf8_lossy(bytes).into_owned()
}

fn scale(a: &mut DLTensor, b: &mut DLTensor, factor: f32) -> Result<(), String> {
    let view = |of: &mut DLTensor| Any {
        type_index: DLTENSOR_PTR,
        padding: 0,
        payload: of as *mut DLTensor as u64,
    };
    let number = Any { type_index: FLOAT, padding: 0, payload: f64::from(factor).to_bits() };
    let args = [view(a), view(b), number];
    let mut result = Any { type_index: NONE, padding: 0, payload: 0 };
    if unsafe { __tvm_ffi_scale(null_mut(), args.as_ptr(), 3, &mut result) } == 0 {
        return Ok(());
    }
    let mut error = null_mut();
    unsafe {
        TVMFFIErrorMoveFromRaised(&mut error);
        let said = format!("{}: {}", text((*error).kind), text((*error).message));
        TVMFFIObjectDecRef(error);
        Err(said)
    }
}

fn main() {
    let (mut a, mut b) = ([0.0f32, 1.0, 2.0, 3.0], [0.0f32; 4]);
    let (mut four, mut three, mut one) = ([4i64], [3i64], [1i64]);
    let mut one_too = one;
    let mut x = tensor(&mut a, &mut four, &mut one);
    let mut y = tensor(&mut b, &mut three, &mut one_too);
    println!("{}", scale(&mut x, &mut y, 2.5).unwrap_err());
    y.shape = x.shape;
    scale(&mut x, &mut y, 2.5).unwrap();
    println!("{} {} {} {}", b[0], b[1], b[2], b[3]);
}
