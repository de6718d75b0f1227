import { notes } from './notes.svelte'
import { common } from './words'

/** copy puts text on the clipboard. */
export async function copy(text: string) {
  try {
    await navigator.clipboard.writeText(text)
  } catch {
    legacy(text) // over plain HTTP, or without permission
  }
  notes.show(common.copied)
}

function legacy(text: string) {
  const area = document.createElement('textarea')
  area.value = text
  const dialogs = document.querySelectorAll('dialog[open]') // beside an open one nothing can be selected
  ;(dialogs[dialogs.length - 1] ?? document.body).append(area)
  area.select()
  document.execCommand('copy')
  area.remove()
}
