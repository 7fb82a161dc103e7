/**
 * A form with a file, sent with progress. Browsers tell how much of a request's body is on its way by
 * XMLHttpRequest only; elsewhere it goes over fetch, and progress is told at its end.
 */
import { CloudError, noAnswer, readProblem } from './problem.ts';

export interface UploadOptions {
  readonly signal?: AbortSignal;
  /** Bytes of the body that were sent, and how many there are. */
  readonly onProgress?: (sentBytes: number, totalBytes: number) => void;
  /** An upload that is sent again with the same key within 24 hours is stored once. */
  readonly idempotencyKey?: string | undefined;
}

export interface FormCall {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly form: FormData;
}

/** The body of the answer. Throws CloudError, or the reason of `signal`. */
export function sendForm(call: FormCall, options: UploadOptions = {}): Promise<unknown> {
  return typeof XMLHttpRequest === 'undefined' ? overFetch(call, options) : overXhr(call, options);
}

async function overFetch({ url, headers, form }: FormCall, { signal, onProgress }: UploadOptions) {
  let response: Response;
  try {
    const init: RequestInit = { method: 'POST', headers, body: form };
    response = await fetch(url, signal === undefined ? init : { ...init, signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw noAnswer(error);
  }
  const text = await response.text();
  if (!response.ok) throw readProblem(response.status, text, response.headers.get('retry-after'));
  onProgress?.(1, 1);
  return JSON.parse(text);
}

function overXhr({ url, headers, form }: FormCall, { signal, onProgress }: UploadOptions): Promise<unknown> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const request = new XMLHttpRequest();
    request.open('POST', url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded, total }) => onProgress?.(loaded, total);
    request.onerror = () => reject(noAnswer(undefined));
    request.onabort = () => reject(signal?.reason);
    request.onload = () => {
      const { status, responseText } = request;
      if (status >= 200 && status < 300) resolve(readAnswer(status, responseText));
      else reject(readProblem(status, responseText, request.getResponseHeader('retry-after')));
    };
    signal?.addEventListener('abort', () => request.abort(), { once: true });
    request.send(form);
  });
}

function readAnswer(status: number, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const detail = 'The answer to the upload was cut off';
    throw new CloudError({ code: 'not_understood', status, detail }, { cause });
  }
}
