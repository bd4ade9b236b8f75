"""The functions of libcuda, and since which version of CUDA it has each of their forms.

From `cuda.h` and `cudaTypedefs.h` of CUDA 13.0. The forms of one function have symbols of their
own: `v2` is the suffix `_v2`, `v1` none. Behind a plus stands what a program that is compiled for
default streams of threads calls: `+s` the suffix `_ptsz`, `+d` `_ptds`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ferrule.specs.deferred import dataclass

_SUFFIXES: Final = {"": "", "s": "_ptsz", "d": "_ptds"}


@dataclass(frozen=True, slots=True)
class Form:
    """A symbol of the library; `per_thread` is that of the same for threads' own streams, or ""."""

    symbol: str
    since: int
    per_thread: str


_LISTED: Final = """
cuArray3DCreate v1:2000 v2:3020
cuArray3DGetDescriptor v1:2000 v2:3020
cuArrayCreate v1:2000 v2:3020
cuArrayDestroy v1:2000
cuArrayGetDescriptor v1:2000 v2:3020
cuArrayGetMemoryRequirements v1:11060
cuArrayGetPlane v1:11020
cuArrayGetSparseProperties v1:11010
cuCheckpointProcessCheckpoint v1:12080
cuCheckpointProcessGetRestoreThreadId v1:12080
cuCheckpointProcessGetState v1:12080
cuCheckpointProcessLock v1:12080
cuCheckpointProcessRestore v1:12080
cuCheckpointProcessUnlock v1:12080
cuCoredumpGetAttribute v1:12010
cuCoredumpGetAttributeGlobal v1:12010
cuCoredumpSetAttribute v1:12010
cuCoredumpSetAttributeGlobal v1:12010
cuCtxAttach v1:2000
cuCtxCreate v1:2000 v2:3020 v3:11040 v4:12050
cuCtxDestroy v1:2000 v2:4000
cuCtxDetach v1:2000
cuCtxDisablePeerAccess v1:4000
cuCtxEnablePeerAccess v1:4000
cuCtxFromGreenCtx v1:12040
cuCtxGetApiVersion v1:3020
cuCtxGetCacheConfig v1:3020
cuCtxGetCurrent v1:4000
cuCtxGetDevResource v1:12040
cuCtxGetDevice v1:2000 v2:13000
cuCtxGetExecAffinity v1:11040
cuCtxGetFlags v1:7000
cuCtxGetId v1:12000
cuCtxGetLimit v1:3010
cuCtxGetSharedMemConfig v1:4020
cuCtxGetStreamPriorityRange v1:5050
cuCtxPopCurrent v1:2000 v2:4000
cuCtxPushCurrent v1:2000 v2:4000
cuCtxRecordEvent v1:12050
cuCtxResetPersistingL2Cache v1:11000
cuCtxSetCacheConfig v1:3020
cuCtxSetCurrent v1:4000
cuCtxSetFlags v1:12010
cuCtxSetLimit v1:3010
cuCtxSetSharedMemConfig v1:4020
cuCtxSynchronize v1:2000 v2:13000
cuCtxWaitEvent v1:12050
cuDestroyExternalMemory v1:10000
cuDestroyExternalSemaphore v1:10000
cuDevResourceGenerateDesc v1:12040
cuDevSmResourceSplitByCount v1:12040
cuDeviceCanAccessPeer v1:4000
cuDeviceComputeCapability v1:2000
cuDeviceGet v1:2000
cuDeviceGetAttribute v1:2000
cuDeviceGetByPCIBusId v1:4010
cuDeviceGetCount v1:2000
cuDeviceGetDefaultMemPool v1:11020
cuDeviceGetDevResource v1:12040
cuDeviceGetExecAffinitySupport v1:11040
cuDeviceGetGraphMemAttribute v1:11040
cuDeviceGetHostAtomicCapabilities v1:13000
cuDeviceGetLuid v1:10000
cuDeviceGetMemPool v1:11020
cuDeviceGetName v1:2000
cuDeviceGetNvSciSyncAttributes v1:10020
cuDeviceGetP2PAtomicCapabilities v1:13000
cuDeviceGetP2PAttribute v1:8000
cuDeviceGetPCIBusId v1:4010
cuDeviceGetProperties v1:2000
cuDeviceGetTexture1DLinearMaxWidth v1:11010
cuDeviceGetUuid v1:9020 v2:11040
cuDeviceGraphMemTrim v1:11040
cuDevicePrimaryCtxGetState v1:7000
cuDevicePrimaryCtxRelease v1:7000 v2:11000
cuDevicePrimaryCtxReset v1:7000 v2:11000
cuDevicePrimaryCtxRetain v1:7000
cuDevicePrimaryCtxSetFlags v1:7000 v2:11000
cuDeviceRegisterAsyncNotification v1:12040
cuDeviceSetGraphMemAttribute v1:11040
cuDeviceSetMemPool v1:11020
cuDeviceTotalMem v1:2000 v2:3020
cuDeviceUnregisterAsyncNotification v1:12040
cuDriverGetVersion v1:2020
cuEventCreate v1:2000
cuEventDestroy v1:2000 v2:4000
cuEventElapsedTime v1:2000 v2:12080
cuEventQuery v1:2000
cuEventRecord v1+s:2000
cuEventRecordWithFlags v1+s:11010
cuEventSynchronize v1:2000
cuExternalMemoryGetMappedBuffer v1:10000
cuExternalMemoryGetMappedMipmappedArray v1:10000
cuFlushGPUDirectRDMAWrites v1:11030
cuFuncGetAttribute v1:2020
cuFuncGetModule v1:11000
cuFuncGetName v1:12030
cuFuncGetParamInfo v1:12040
cuFuncIsLoaded v1:12040
cuFuncLoad v1:12040
cuFuncSetAttribute v1:9000
cuFuncSetBlockShape v1:2000
cuFuncSetCacheConfig v1:3000
cuFuncSetSharedMemConfig v1:4020
cuFuncSetSharedSize v1:2000
cuGetErrorName v1:6000
cuGetErrorString v1:6000
cuGetExportTable v1:3000
cuGetProcAddress v1:11030 v2:12000
cuGraphAddBatchMemOpNode v1:11070
cuGraphAddChildGraphNode v1:10000
cuGraphAddDependencies v1:10000 v2:12030
cuGraphAddEmptyNode v1:10000
cuGraphAddEventRecordNode v1:11010
cuGraphAddEventWaitNode v1:11010
cuGraphAddExternalSemaphoresSignalNode v1:11020
cuGraphAddExternalSemaphoresWaitNode v1:11020
cuGraphAddHostNode v1:10000
cuGraphAddKernelNode v1:10000 v2:12000
cuGraphAddMemAllocNode v1:11040
cuGraphAddMemFreeNode v1:11040
cuGraphAddMemcpyNode v1:10000
cuGraphAddMemsetNode v1:10000
cuGraphAddNode v1:12020 v2:12030
cuGraphBatchMemOpNodeGetParams v1:11070
cuGraphBatchMemOpNodeSetParams v1:11070
cuGraphChildGraphNodeGetGraph v1:10000
cuGraphClone v1:10000
cuGraphConditionalHandleCreate v1:12030
cuGraphCreate v1:10000
cuGraphDebugDotPrint v1:11030
cuGraphDestroy v1:10000
cuGraphDestroyNode v1:10000
cuGraphEventRecordNodeGetEvent v1:11010
cuGraphEventRecordNodeSetEvent v1:11010
cuGraphEventWaitNodeGetEvent v1:11010
cuGraphEventWaitNodeSetEvent v1:11010
cuGraphExecBatchMemOpNodeSetParams v1:11070
cuGraphExecChildGraphNodeSetParams v1:11010
cuGraphExecDestroy v1:10000
cuGraphExecEventRecordNodeSetEvent v1:11010
cuGraphExecEventWaitNodeSetEvent v1:11010
cuGraphExecExternalSemaphoresSignalNodeSetParams v1:11020
cuGraphExecExternalSemaphoresWaitNodeSetParams v1:11020
cuGraphExecGetFlags v1:12000
cuGraphExecHostNodeSetParams v1:10020
cuGraphExecKernelNodeSetParams v1:10010 v2:12000
cuGraphExecMemcpyNodeSetParams v1:10020
cuGraphExecMemsetNodeSetParams v1:10020
cuGraphExecNodeSetParams v1:12020
cuGraphExecUpdate v1:10020 v2:12000
cuGraphExternalSemaphoresSignalNodeGetParams v1:11020
cuGraphExternalSemaphoresSignalNodeSetParams v1:11020
cuGraphExternalSemaphoresWaitNodeGetParams v1:11020
cuGraphExternalSemaphoresWaitNodeSetParams v1:11020
cuGraphGetEdges v1:10000 v2:12030
cuGraphGetNodes v1:10000
cuGraphGetRootNodes v1:10000
cuGraphHostNodeGetParams v1:10000
cuGraphHostNodeSetParams v1:10000
cuGraphInstantiate v1:10000 v2:11000
cuGraphInstantiateWithFlags v1:11040
cuGraphInstantiateWithParams v1+s:12000
cuGraphKernelNodeCopyAttributes v1:11000
cuGraphKernelNodeGetAttribute v1:11000
cuGraphKernelNodeGetParams v1:10000 v2:12000
cuGraphKernelNodeSetAttribute v1:11000
cuGraphKernelNodeSetParams v1:10000 v2:12000
cuGraphLaunch v1+s:10000
cuGraphMemAllocNodeGetParams v1:11040
cuGraphMemFreeNodeGetParams v1:11040
cuGraphMemcpyNodeGetParams v1:10000
cuGraphMemcpyNodeSetParams v1:10000
cuGraphMemsetNodeGetParams v1:10000
cuGraphMemsetNodeSetParams v1:10000
cuGraphNodeFindInClone v1:10000
cuGraphNodeGetDependencies v1:10000 v2:12030
cuGraphNodeGetDependentNodes v1:10000 v2:12030
cuGraphNodeGetEnabled v1:11060
cuGraphNodeGetType v1:10000
cuGraphNodeSetEnabled v1:11060
cuGraphNodeSetParams v1:12020
cuGraphReleaseUserObject v1:11030
cuGraphRemoveDependencies v1:10000 v2:12030
cuGraphRetainUserObject v1:11030
cuGraphUpload v1+s:11010
cuGraphicsMapResources v1+s:3000
cuGraphicsResourceGetMappedMipmappedArray v1:5000
cuGraphicsResourceGetMappedPointer v1:3000 v2:3020
cuGraphicsResourceSetMapFlags v1:3000 v2:6050
cuGraphicsSubResourceGetMappedArray v1:3000
cuGraphicsUnmapResources v1+s:3000
cuGraphicsUnregisterResource v1:3000
cuGreenCtxCreate v1:12040
cuGreenCtxDestroy v1:12040
cuGreenCtxGetDevResource v1:12040
cuGreenCtxGetId v1:12090
cuGreenCtxRecordEvent v1:12040
cuGreenCtxStreamCreate v1:12050
cuGreenCtxWaitEvent v1:12040
cuImportExternalMemory v1:10000
cuImportExternalSemaphore v1:10000
cuInit v1:2000
cuIpcCloseMemHandle v1:4010
cuIpcGetEventHandle v1:4010
cuIpcGetMemHandle v1:4010
cuIpcOpenEventHandle v1:4010
cuIpcOpenMemHandle v1:4010 v2:11000
cuKernelGetAttribute v1:12000
cuKernelGetFunction v1:12000
cuKernelGetLibrary v1:12050
cuKernelGetName v1:12030
cuKernelGetParamInfo v1:12040
cuKernelSetAttribute v1:12000
cuKernelSetCacheConfig v1:12000
cuLaunch v1:2000
cuLaunchCooperativeKernel v1+s:9000
cuLaunchCooperativeKernelMultiDevice v1:9000
cuLaunchGrid v1:2000
cuLaunchGridAsync v1:2000
cuLaunchHostFunc v1+s:10000
cuLaunchKernel v1+s:4000
cuLaunchKernelEx v1+s:11060
cuLibraryEnumerateKernels v1:12040
cuLibraryGetGlobal v1:12000
cuLibraryGetKernel v1:12000
cuLibraryGetKernelCount v1:12040
cuLibraryGetManaged v1:12000
cuLibraryGetModule v1:12000
cuLibraryGetUnifiedFunction v1:12000
cuLibraryLoadData v1:12000
cuLibraryLoadFromFile v1:12000
cuLibraryUnload v1:12000
cuLinkAddData v1:5050 v2:6050
cuLinkAddFile v1:5050 v2:6050
cuLinkComplete v1:5050
cuLinkCreate v1:5050 v2:6050
cuLinkDestroy v1:5050
cuLogsCurrent v1:12090
cuLogsDumpToFile v1:12090
cuLogsDumpToMemory v1:12090
cuLogsRegisterCallback v1:12090
cuLogsUnregisterCallback v1:12090
cuMemAddressFree v1:10020
cuMemAddressReserve v1:10020
cuMemAdvise v1:8000 v2:12020
cuMemAlloc v1:2000 v2:3020
cuMemAllocAsync v1+s:11020
cuMemAllocFromPoolAsync v1+s:11020
cuMemAllocHost v1:2000 v2:3020
cuMemAllocManaged v1:6000
cuMemAllocPitch v1:2000 v2:3020
cuMemBatchDecompressAsync v1+s:12060
cuMemCreate v1:10020
cuMemDiscardAndPrefetchBatchAsync v1+s:13000
cuMemDiscardBatchAsync v1+s:13000
cuMemExportToShareableHandle v1:10020
cuMemFree v1:2000 v2:3020
cuMemFreeAsync v1+s:11020
cuMemFreeHost v1:2000
cuMemGetAccess v1:10020
cuMemGetAddressRange v1:2000 v2:3020
cuMemGetAllocationGranularity v1:10020
cuMemGetAllocationPropertiesFromHandle v1:10020
cuMemGetDefaultMemPool v1:13000
cuMemGetHandleForAddressRange v1:11070
cuMemGetInfo v1:2000 v2:3020
cuMemGetMemPool v1:13000
cuMemHostAlloc v1:2020
cuMemHostGetDevicePointer v1:2020 v2:3020
cuMemHostGetFlags v1:2030
cuMemHostRegister v1:4000 v2:6050
cuMemHostUnregister v1:4000
cuMemImportFromShareableHandle v1:10020
cuMemMap v1:10020
cuMemMapArrayAsync v1+s:11010
cuMemPoolCreate v1:11020
cuMemPoolDestroy v1:11020
cuMemPoolExportPointer v1:11020
cuMemPoolExportToShareableHandle v1:11020
cuMemPoolGetAccess v1:11020
cuMemPoolGetAttribute v1:11020
cuMemPoolImportFromShareableHandle v1:11020
cuMemPoolImportPointer v1:11020
cuMemPoolSetAccess v1:11020
cuMemPoolSetAttribute v1:11020
cuMemPoolTrimTo v1:11020
cuMemPrefetchAsync v1:8000 v2+s:12020
cuMemPrefetchBatchAsync v1+s:13000
cuMemRangeGetAttribute v1:8000
cuMemRangeGetAttributes v1:8000
cuMemRelease v1:10020
cuMemRetainAllocationHandle v1:11000
cuMemSetAccess v1:10020
cuMemSetMemPool v1:13000
cuMemUnmap v1:10020
cuMemcpy v1+d:4000
cuMemcpy2D v1:2000 v2+d:3020
cuMemcpy2DAsync v1:2000 v2+s:3020
cuMemcpy2DUnaligned v1:2000 v2+d:3020
cuMemcpy3D v1:2000 v2+d:3020
cuMemcpy3DAsync v1:2000 v2+s:3020
cuMemcpy3DBatchAsync v1:12080 v2+s:13000
cuMemcpy3DPeer v1+d:4000
cuMemcpy3DPeerAsync v1+s:4000
cuMemcpyAsync v1+s:4000
cuMemcpyAtoA v1:2000 v2+d:3020
cuMemcpyAtoD v1:2000 v2+d:3020
cuMemcpyAtoH v1:2000 v2+d:3020
cuMemcpyAtoHAsync v1:2000 v2+s:3020
cuMemcpyBatchAsync v1:12080 v2+s:13000
cuMemcpyDtoA v1:2000 v2+d:3020
cuMemcpyDtoD v1:2000 v2+d:3020
cuMemcpyDtoDAsync v1:3000 v2+s:3020
cuMemcpyDtoH v1:2000 v2+d:3020
cuMemcpyDtoHAsync v1:2000 v2+s:3020
cuMemcpyHtoA v1:2000 v2+d:3020
cuMemcpyHtoAAsync v1:2000 v2+s:3020
cuMemcpyHtoD v1:2000 v2+d:3020
cuMemcpyHtoDAsync v1:2000 v2+s:3020
cuMemcpyPeer v1+d:4000
cuMemcpyPeerAsync v1+s:4000
cuMemsetD16 v1:2000 v2+d:3020
cuMemsetD16Async v1+s:3020
cuMemsetD2D16 v1:2000 v2+d:3020
cuMemsetD2D16Async v1+s:3020
cuMemsetD2D32 v1:2000 v2+d:3020
cuMemsetD2D32Async v1+s:3020
cuMemsetD2D8 v1:2000 v2+d:3020
cuMemsetD2D8Async v1+s:3020
cuMemsetD32 v1:2000 v2+d:3020
cuMemsetD32Async v1+s:3020
cuMemsetD8 v1:2000 v2+d:3020
cuMemsetD8Async v1+s:3020
cuMipmappedArrayCreate v1:5000
cuMipmappedArrayDestroy v1:5000
cuMipmappedArrayGetLevel v1:5000
cuMipmappedArrayGetMemoryRequirements v1:11060
cuMipmappedArrayGetSparseProperties v1:11010
cuModuleEnumerateFunctions v1:12040
cuModuleGetFunction v1:2000
cuModuleGetFunctionCount v1:12040
cuModuleGetGlobal v1:2000 v2:3020
cuModuleGetLoadingMode v1:11070
cuModuleGetSurfRef v1:3000
cuModuleGetTexRef v1:2000
cuModuleLoad v1:2000
cuModuleLoadData v1:2000
cuModuleLoadDataEx v1:2010
cuModuleLoadFatBinary v1:2000
cuModuleUnload v1:2000
cuMulticastAddDevice v1:12010
cuMulticastBindAddr v1:12010
cuMulticastBindMem v1:12010
cuMulticastCreate v1:12010
cuMulticastGetGranularity v1:12010
cuMulticastUnbind v1:12010
cuOccupancyAvailableDynamicSMemPerBlock v1:10020
cuOccupancyMaxActiveBlocksPerMultiprocessor v1:6050
cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags v1:7000
cuOccupancyMaxActiveClusters v1:11070
cuOccupancyMaxPotentialBlockSize v1:6050
cuOccupancyMaxPotentialBlockSizeWithFlags v1:7000
cuOccupancyMaxPotentialClusterSize v1:11070
cuParamSetSize v1:2000
cuParamSetTexRef v1:2000
cuParamSetf v1:2000
cuParamSeti v1:2000
cuParamSetv v1:2000
cuPointerGetAttribute v1:4000
cuPointerGetAttributes v1:7000
cuPointerSetAttribute v1:6000
cuSignalExternalSemaphoresAsync v1+s:10000
cuStreamAddCallback v1+s:5000
cuStreamAttachMemAsync v1+s:6000
cuStreamBatchMemOp v1:8000 v2+s:11070
cuStreamBeginCapture v1:10000 v2+s:10010
cuStreamBeginCaptureToGraph v1+s:12030
cuStreamCopyAttributes v1+s:11000
cuStreamCreate v1:2000
cuStreamCreateWithPriority v1:5050
cuStreamDestroy v1:2000 v2:4000
cuStreamEndCapture v1+s:10000
cuStreamGetAttribute v1+s:11000
cuStreamGetCaptureInfo v1:10010 v2:11030 v3+s:12030
cuStreamGetCtx v1+s:9020 v2+s:12050
cuStreamGetDevice v1+s:12080
cuStreamGetFlags v1+s:5050
cuStreamGetGreenCtx v1:12040
cuStreamGetId v1+s:12000
cuStreamGetPriority v1+s:5050
cuStreamIsCapturing v1+s:10000
cuStreamQuery v1+s:2000
cuStreamSetAttribute v1+s:11000
cuStreamSynchronize v1+s:2000
cuStreamUpdateCaptureDependencies v1:11030 v2+s:12030
cuStreamWaitEvent v1+s:3020
cuStreamWaitValue32 v1:8000 v2+s:11070
cuStreamWaitValue64 v1:9000 v2+s:11070
cuStreamWriteValue32 v1:8000 v2+s:11070
cuStreamWriteValue64 v1:9000 v2+s:11070
cuSurfObjectCreate v1:5000
cuSurfObjectDestroy v1:5000
cuSurfObjectGetResourceDesc v1:5000
cuSurfRefGetArray v1:3000
cuSurfRefSetArray v1:3000
cuTensorMapEncodeIm2col v1:12000
cuTensorMapEncodeIm2colWide v1:12080
cuTensorMapEncodeTiled v1:12000
cuTensorMapReplaceAddress v1:12000
cuTexObjectCreate v1:5000
cuTexObjectDestroy v1:5000
cuTexObjectGetResourceDesc v1:5000
cuTexObjectGetResourceViewDesc v1:5000
cuTexObjectGetTextureDesc v1:5000
cuTexRefCreate v1:2000
cuTexRefDestroy v1:2000
cuTexRefGetAddress v1:2000 v2:3020
cuTexRefGetAddressMode v1:2000
cuTexRefGetArray v1:2000
cuTexRefGetBorderColor v1:8000
cuTexRefGetFilterMode v1:2000
cuTexRefGetFlags v1:2000
cuTexRefGetFormat v1:2000
cuTexRefGetMaxAnisotropy v1:5000
cuTexRefGetMipmapFilterMode v1:5000
cuTexRefGetMipmapLevelBias v1:5000
cuTexRefGetMipmapLevelClamp v1:5000
cuTexRefGetMipmappedArray v1:5000
cuTexRefSetAddress v1:2000 v2:3020
cuTexRefSetAddress2D v1:2020 v2:3020 v3:4010
cuTexRefSetAddressMode v1:2000
cuTexRefSetArray v1:2000
cuTexRefSetBorderColor v1:8000
cuTexRefSetFilterMode v1:2000
cuTexRefSetFlags v1:2000
cuTexRefSetFormat v1:2000
cuTexRefSetMaxAnisotropy v1:5000
cuTexRefSetMipmapFilterMode v1:5000
cuTexRefSetMipmapLevelBias v1:5000
cuTexRefSetMipmapLevelClamp v1:5000
cuTexRefSetMipmappedArray v1:5000
cuThreadExchangeStreamCaptureMode v1:10010
cuUserObjectCreate v1:11030
cuUserObjectRelease v1:11030
cuUserObjectRetain v1:11030
cuWaitExternalSemaphoresAsync v1+s:10000
"""


def _form(base: str, text: str) -> Form:
    version, _, since = text.partition(":")
    version, _, kind = version.partition("+")
    symbol = base if version == "v1" else f"{base}_{version}"
    return Form(symbol, int(since), symbol + _SUFFIXES[kind] if kind else "")


def _read() -> Mapping[str, tuple[Form, ...]]:
    lines = (line.split() for line in _LISTED.split("\n") if line)
    return MappingProxyType(
        {base: tuple(_form(base, each) for each in forms) for base, *forms in lines}
    )


FUNCTIONS: Final = _read()
"""By the name that programs write, the forms from the oldest on."""
