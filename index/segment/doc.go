// Package segment is the stored form of a search index: rows of one owner that do not change any
// more, in parts that are read one by one. A question reads the head once and then only the
// parts that hold its words.
//
// Part 0 is the head: for each row the number of its terms and its attribute, the groups, and
// which part holds which terms, ids and vectors. Rows are numbered from 0 by group and by order
// in it, so neighbours have neighbouring numbers. Numbers are varints unless it says otherwise.
//
//	head     version (1 byte), checksum of what follows (4 bytes)
//	         rows, groups, lone rows, blocks of terms, blocks of ids, spaces
//	         id of the last lone row
//	         for each row its terms
//	         for each row its attribute: the upper half as a distance, the lower one in 4 bytes
//	         for each group its name, rows, lowest order and distance to the highest
//	         for each block of terms its first term
//	         for each block of ids its first id
//	         for each space its model, the length of a vector, and the number of its parts
//	terms    a block of a dictionary (package dict); the number of a term is in how many rows it is
//	ids      for each row the length that its id shares with the one before, the rest, its order
//	vectors  for each row the signs of its rotated vector, a bit a number; none = no vector
package segment
