// Package weburl has the rules for addresses of web pages: one spelling per page, which
// addresses are never read, the ordered pool of known pages, and their ranking. It does no
// I/O; a reranker is handed in as a function.
package weburl
