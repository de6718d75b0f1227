// Package markdown repairs the Markdown that a model wrote as an answer: its footnotes, tables, links and
// blocks of code. Repairs leave code as it is, and take time in proportion to the text. The package knows
// no model, and decides nothing about what an answer says.
package markdown
