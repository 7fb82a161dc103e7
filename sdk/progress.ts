/** Uploads with progress. */
import type { ProgressListener } from './types.ts';

interface Sent {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: FormData | string | undefined;
  readonly signal: AbortSignal | null;
}

/** Like fetch, over XMLHttpRequest, which supports upload progress in browsers. */
export async function fetchWithProgress(
  url: string,
  sent: Sent,
  onProgress: ProgressListener,
): Promise<Response> {
  const { method, headers, body, signal } = sent;
  const { promise, resolve, reject } = Promise.withResolvers<Response>();
  signal?.throwIfAborted();
  const request = new XMLHttpRequest();
  const abort = () => request.abort();
  request.open(method, url);
  for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
  request.upload.onprogress = ({ loaded, total }) => onProgress(loaded, total);
  request.onerror = () => reject(new TypeError('the request failed'));
  request.onabort = () => reject(signal?.reason);
  request.onload = () => {
    const retryAfter = request.getResponseHeader('retry-after');
    const responseHeaders = retryAfter === null ? {} : { 'retry-after': retryAfter };
    resolve(new Response(request.responseText || null, { status: request.status, headers: responseHeaders }));
  };
  request.onloadend = () => signal?.removeEventListener('abort', abort);
  signal?.addEventListener('abort', abort);
  request.send(body);
  return promise;
}
