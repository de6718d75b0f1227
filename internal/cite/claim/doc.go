// Package claim decides by words whether what a sentence says stands in its source: by how much of the sentence the
// source has (Coverage), and by contradictions, which detectors look for. A detector is a file with a pure function
// of a Pair: the claim and what a source says, both prepared once. Words of the languages are data.
package claim
