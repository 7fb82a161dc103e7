/** Headers every response carries. */

/** For the JSON API: nothing may be loaded, framed, sniffed or cached. */
export const API_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
};

/**
 * For users' files on the data origin: whatever they are, they run as nobody's script. `sandbox` gives
 * an opened HTML or SVG file an opaque origin without scripts; pages of other origins may embed images.
 */
export const DATA_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; media-src 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'cross-origin',
};

/** Sent besides when users reach us by https. */
export const HSTS = { 'strict-transport-security': 'max-age=31536000' } as const;
