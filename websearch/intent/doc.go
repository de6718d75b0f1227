// Package intent decides whether a message to a character needs a web search, and what to
// search for. Functions are pure; they know no provider and no model. Rules of language are
// for English and Chinese, with some for Japanese and Korean.
package intent
