package cite

// StripAll removes the marks of a reply in whatever form a model has written them, those
// with numbers of that many sources.
func StripAll(reply string, sources int) string {
	clean, _ := readMarks(reply, sources)
	return clean
}

// Marks are the numbers of the marks [^n] in a text, in their order.
func Marks(text string) (numbers []int) {
	_, found := readMarks(text, 0)
	for _, w := range found {
		numbers = append(numbers, w.numbers...)
	}
	return numbers
}
