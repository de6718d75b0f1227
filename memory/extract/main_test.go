package extract_test

import (
	"fmt"
	"os"
	"testing"

	"nodest/store/storetest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := storetest.DropSchemas(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}
