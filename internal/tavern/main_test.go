package tavern_test

import (
	"testing"

	"nodest/store/storetest"
)

func TestMain(m *testing.M) { storetest.Exit(m.Run()) }
