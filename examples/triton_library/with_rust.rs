// Calls the library of rows.py by its C symbols, with rustc alone and no crates.
//
//   ferrule build rows.py -o dist
//   rustc with_rust.rs -L dist -l rows -L $(tvm-ffi-config --libdir) -l tvm_ffi \
//     -C link-arg=-Wl,--no-as-needed -C link-arg=-Wl,-rpath,dist:$(tvm-ffi-config --libdir)
//
// Each call is checked by the library: this one has a result with too few columns.
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

/// What follows the head of an object that is an error, as tvm-ffi's C header has it.
#[repr(C)]
struct ErrorCell {
    kind: *const u8,
    kind_size: usize,
    message: *const u8,
    message_size: usize,
}

const NONE: i32 = 0;
const DLTENSOR_PTR: i32 = 7;
const CUDA: i32 = 2;
const OBJECT_HEAD: usize = 24;

extern "C" {
    fn __tvm_ffi_swiglu(handle: *mut c_void, args: *const Any, count: i32, result: *mut Any) -> i32;
    fn TVMFFIErrorMoveFromRaised(handle: *mut *mut c_void);
    fn TVMFFIObjectDecRef(handle: *mut c_void) -> i32;
}

fn tensor(data: *mut f32, shape: &mut [i64; 2], strides: &mut [i64; 2]) -> DLTensor {
    DLTensor {
        data: data.cast(),
        device_type: CUDA,
        device_id: 0,
        ndim: 2,
        code: 2,
        bits: 32,
        lanes: 1,
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    }
}

fn view(of: &mut DLTensor) -> Any {
    Any { type_index: DLTENSOR_PTR, padding: 0, payload: of as *mut DLTensor as u64 }
}

fn raised() -> (String, String) {
    let mut handle = null_mut();
    unsafe {
        TVMFFIErrorMoveFromRaised(&mut handle);
        let cell = &*(handle.cast::<u8>().add(OBJECT_HEAD) as *const ErrorCell);
        let text = |at, size| String::from_utf8_lossy(std::slice::from_raw_parts(at, size)).into();
        let found = (text(cell.kind, cell.kind_size), text(cell.message, cell.message_size));
        TVMFFIObjectDecRef(handle);
        found
    }
}

fn main() {
    let mut memory = [0.0f32; 12];
    let data = memory.as_mut_ptr();
    let (mut shape, mut strides) = ([2i64, 6], [6i64, 1]);
    let (mut narrow, mut narrow_strides) = ([2i64, 5], [5i64, 1]);
    let mut a = tensor(data, &mut shape, &mut strides);
    let mut y = tensor(data, &mut narrow, &mut narrow_strides);
    let mut result = Any { type_index: NONE, padding: 0, payload: 0 };
    let arguments = [view(&mut a), view(&mut a), view(&mut y)];
    let status = unsafe { __tvm_ffi_swiglu(null_mut(), arguments.as_ptr(), 3, &mut result) };
    assert_ne!(status, 0);
    let (kind, message) = raised();
    println!("{kind}: {}", message.lines().last().unwrap_or(""));
}
