const side = 256 // pixels

/** portrait makes a small square picture of a file, as a data: address. */
export async function portrait(file: Blob): Promise<string> {
  const picture = await createImageBitmap(file)
  const cut = Math.min(picture.width, picture.height)
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = Math.min(side, cut)
  const draw = canvas.getContext('2d')!
  draw.fillStyle = 'white'
  draw.fillRect(0, 0, canvas.width, canvas.height)
  // Faces are nearer the top of a high picture.
  draw.drawImage(picture, (picture.width - cut) / 2, (picture.height - cut) / 5, cut, cut, 0, 0, canvas.width, canvas.height)
  picture.close()
  return canvas.toDataURL('image/jpeg', 0.85)
}
