package nodest

import (
	"reflect"
	"strings"
	"testing"
)

// widestStruct bounds the fields of what a turn is made of, those of structs within it counted.
const widestStruct = 20

// A person can hold each part of a turn in the head.
func TestNoPartOfATurnIsWide(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	for _, root := range []any{task{}, turn{}, assignment{}, storedChat{}, toolLoop{}, modelAnswer{}, end{}, endedGeneration{}} {
		checkWidth(t, reflect.TypeOf(root), seen)
	}
	if len(seen) < 20 {
		t.Errorf("only %d parts were found", len(seen))
	}
}

// checkWidth checks the structs of this package that a type has.
func checkWidth(t *testing.T, of reflect.Type, seen map[reflect.Type]bool) {
	t.Helper()
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
		checkWidth(t, of.Elem(), seen)
		return
	case reflect.Struct:
	default:
		return
	}
	if of.PkgPath() != reflect.TypeFor[task]().PkgPath() || seen[of] || of == reflect.TypeFor[Engine]() {
		return
	}
	seen[of] = true
	if n := widthOf(of); n > widestStruct {
		t.Errorf("%s has %d fields", of, n)
	}
	for f := range of.Fields() {
		checkWidth(t, f.Type, seen)
	}
}

// widthOf counts the fields of a struct, and those of our structs in it in their place.
func widthOf(of reflect.Type) (n int) {
	for f := range of.Fields() {
		if f.Type.Kind() == reflect.Struct && strings.HasPrefix(f.Type.PkgPath(), "nodest/") {
			n += widthOf(f.Type)
		} else {
			n++
		}
	}
	return n
}
