package parse

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// residentMemory returns how much memory a process uses, in bytes.
func residentMemory(pid int) (int64, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(data)
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}

// limitMemory has the kernel refuse memory that the parent would not see in time. Reserved
// memory counts too, so it is twice the limit.
func limitMemory(limit int64) {
	most := uint64(2*limit) + 256<<20
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: most, Max: most}) // the parent limits it as well
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}
