/**
 * The terminal writes the true colours of its text as `style` attributes of spans. The policy of the page
 * lets nothing through that way, but a script may set the same styles.
 */
export function letSpansHaveStyles(): void {
  const { prototype } = HTMLSpanElement;
  if (Object.hasOwn(prototype, 'setAttribute')) return;
  const { setAttribute } = prototype;
  prototype.setAttribute = function (name, value) {
    if (name === 'style') this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };
}
