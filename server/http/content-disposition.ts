/**
 * Content-Disposition (RFC 6266) with `filename=` last: unquoted when it is a token, else quoted, so that
 * clients which cut the header at `filename=` get the name; `filename*` before it when it is not ASCII.
 */
export function contentDisposition(kind: 'attachment' | 'inline', objectName: string): string {
  const name = objectName.slice(objectName.lastIndexOf('/') + 1) || 'download';
  // Anything that could end the header or the quotes is replaced; the extended form keeps it.
  const ascii = name.replace(/[^\x20-\x7e]|["\\]/gu, '_');
  const plain = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(ascii) ? ascii : `"${ascii}"`;
  const extended = ascii === name ? '' : `filename*=UTF-8''${encodeExtended(name)}; `;
  return `${kind}; ${extended}filename=${plain}`;
}

/** RFC 8187 ext-value: percent-encoded but for attr-char. */
function encodeExtended(name: string): string {
  return encodeURIComponent(name).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}
