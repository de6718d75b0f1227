// The open dialogs, the topmost last. All that is outside of it cannot be used, nor is it
// read aloud.

let open = $state.raw<HTMLElement[]>([])

export const dialogs = {
  get top() {
    return open.at(-1)
  },
  /** add returns the function that takes the dialog away. */
  add(dialog: HTMLElement) {
    open = [...open, dialog]
    return () => {
      open = open.filter((d) => d !== dialog)
    }
  },
}
