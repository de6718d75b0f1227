// Package attachment keeps the images that users upload, with thumbnails.
package attachment
