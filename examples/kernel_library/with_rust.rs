// Calls the library of kernels.py, with rustc alone and no crates.
//
//   ferrule build kernels.py -o dist
//   rustc with_rust.rs -L dist -l activations -L $(tvm-ffi-config --libdir) -l tvm_ffi \
//     -C link-arg=-Wl,-rpath,dist:$(tvm-ffi-config --libdir)
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

const NONE: i32 = 0;
const FLOAT: i32 = 3;
const DLTENSOR_PTR: i32 = 7;

extern "C" {
    fn __tvm_ffi_relu(handle: *mut c_void, args: *const Any, count: i32, result: *mut Any) -> i32;
    fn __tvm_ffi_sum_of_squares(
        handle: *mut c_void,
        args: *const Any,
        count: i32,
        result: *mut Any,
    ) -> i32;
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

fn view(of: &mut DLTensor) -> Any {
    Any { type_index: DLTENSOR_PTR, padding: 0, payload: of as *mut DLTensor as u64 }
}

fn main() {
    let (mut a, mut b) = ([-1.0f32, 0.0, 1.0, 2.0], [0.0f32; 4]);
    let (mut four, mut one, mut four_too, mut one_too) = ([4i64], [1i64], [4i64], [1i64]);
    let mut x = tensor(&mut a, &mut four, &mut one);
    let mut y = tensor(&mut b, &mut four_too, &mut one_too);
    let mut result = Any { type_index: NONE, padding: 0, payload: 0 };
    unsafe {
        assert_eq!(__tvm_ffi_relu(null_mut(), [view(&mut x), view(&mut y)].as_ptr(), 2, &mut result), 0);
        assert_eq!(__tvm_ffi_sum_of_squares(null_mut(), [view(&mut y)].as_ptr(), 1, &mut result), 0);
    }
    assert_eq!(result.type_index, FLOAT);
    println!("{} {} {} {}, squares {}", b[0], b[1], b[2], b[3], f64::from_bits(result.payload));
}
