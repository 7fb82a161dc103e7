/** A browser has one session: its tabs restart when another tab signs out or in with another account. */

import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { cloud } from '../cloud.ts';
import { uploadQueue } from '../uploads/upload-queue.ts';

const CHANNEL = 'account';

/** Removes all data of the previous account from the page. */
export function beginAnewAs(id: number): void {
  uploadQueue.signedIn(id);
  location.assign('/');
}

/** All tabs go to the sign-in page. Uploads wait for the same account. */
function tellSignedOut(): void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.postMessage(null);
  channel.close();
}

/** `id`: of the account that this page belongs to; undefined while unknown. */
export function useOneAccount(id: number | undefined): void {
  const first = useRef(id);
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  useEffect(() => {
    if (id === undefined) return;
    first.current ??= id;
    if (first.current !== id) return beginAnewAs(id);
    const channel = new BroadcastChannel(CHANNEL);
    channel.onmessage = async ({ data }: MessageEvent<number | null>) => {
      if (data === id) return;
      if (data !== null) return beginAnewAs(data);
      await navigate({ to: '/sign-in' });
      queryClient.clear();
      notifications.clean();
    };
    channel.postMessage(id);
    return () => channel.close();
  }, [id, queryClient, navigate]);
}

/** Ends the session; every tab of this browser drops the account's data. */
export function useSignOut() {
  return useMutation({ mutationFn: () => cloud.logout(), onSuccess: tellSignedOut });
}
