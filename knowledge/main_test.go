package knowledge_test

import (
	"fmt"
	"os"
	"testing"

	"nodest/store/storetest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := storetest.DropSchemas(); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}
