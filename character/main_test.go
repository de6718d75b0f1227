package character_test

import (
	"testing"

	"nodest/nodest/nodesttest"
)

func TestMain(m *testing.M) { nodesttest.Main(m) }
