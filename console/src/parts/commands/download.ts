/**
 * Downloads that the browser keeps: it opens an address, which needs a ticket because it sends no header of
 * ours.
 */
import { useMutation } from '@tanstack/react-query';
import type { Cloud } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';

type Target = Parameters<Cloud['ticketUrl']>;

/** A download of a button: `download.mutate()` begins it. */
export function useDownload(...target: Target) {
  return useMutation({ mutationFn: () => cloud.ticketUrl(...target), onSuccess: follow });
}

/** The same, of what is chosen only then: `download.mutate(['downloadObject', [id]])`. */
export function useDownloads() {
  return useMutation({ mutationFn: (target: Target) => cloud.ticketUrl(...target), onSuccess: follow });
}

/** A refusal is then a failed download, and the page stays. */
function follow(url: string): void {
  const link = document.createElement('a');
  link.href = url;
  link.download = '';
  link.click();
}
