// Package worldinfo decides which entries of world books a prompt gets, by the rules of
// SillyTavern 1.19, and says of each entry why. It is pure: texts, macros, the token counter and
// randomness come in, and the state of timed effects comes in and goes out.
//
// Compile makes books ready once per version of them. Book.Scan is one scan of a chat.
package worldinfo
