/** grow makes a text field as high as its text. */
export function grow(field: HTMLTextAreaElement) {
  const fit = () => {
    field.style.height = 'auto'
    field.style.height = field.scrollHeight + 2 + 'px'
  }
  field.addEventListener('input', fit)
  const observer = new ResizeObserver(fit)
  observer.observe(field.parentElement!)
  fit()
  return () => {
    field.removeEventListener('input', fit)
    observer.disconnect()
  }
}
