/**
 * The policy of the page lets in only styles that carry its nonce. Libraries make `<style>` elements while
 * they run, and most have no setting for it: each such element is given it here.
 */
export function giveStylesTheNonce(): string {
  const nonce = document.querySelector<HTMLMetaElement>('meta[property=csp-nonce]')?.nonce ?? '';
  const createElement = document.createElement.bind(document);
  document.createElement = (name: string, options?: ElementCreationOptions) => {
    const element = createElement(name, options);
    if (element instanceof HTMLStyleElement) element.nonce = nonce;
    return element;
  };
  return nonce;
}
