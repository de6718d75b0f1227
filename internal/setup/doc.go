// Package setup reads the settings of the program and finds the models that they name. It must not
// start anything, or know what the settings are used for: the commands do.
package setup
