// Package segment is the stored form of a search index: rows of one owner that do not change any
// more, in parts that are read one by one. A question reads the head once and then only the
// parts that hold its words. docs/disk.md describes the bytes.
//
// Part 0 is the head: for each row the number of its terms and its attribute, the groups, and
// which part holds which terms, ids and signs of vectors. Rows are numbered from 0 by group and by
// order in it, so neighbours have neighbouring numbers. Numbers are varints unless it says otherwise.
package segment
