/** Incomplete multipart uploads: to continue or abort. */
import { ArrowUpTrayIcon } from '@heroicons/react/24/outline';
import { Button, FileButton, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { OpenUpload } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { Confirm } from '../../../parts/forms/dialog.tsx';
import { showDone } from '../../../parts/notices.tsx';
import { Empty, Loaded } from '../../../parts/page.tsx';
import { sayBytes, sayName } from '../../../parts/say.ts';
import { type Column, DataTable } from '../../../parts/tables/data-table.tsx';
import { When } from '../../../parts/tables/when.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { text } from '../../../texts/text.ts';
import { uploadQueue } from '../../../uploads/upload-queue.ts';
import { uploadsQuery } from '../queries.ts';

const words = s3Text.uploads;

export function UploadsTab({ bucket }: { bucket: string }) {
  const uploads = useQuery(uploadsQuery(bucket));
  const columns: readonly Column<OpenUpload>[] = [
    { name: text.storage.name, cell: ({ name }) => sayName(name), title: ({ name }) => name },
    { name: words.size, cell: ({ size }) => sayBytes(size) },
    { name: words.begun, cell: ({ created_at: at }) => <When at={at} /> },
    { name: words.ends, cell: ({ ends_at: at }) => <When at={at} /> },
    {
      name: text.storage.actions,
      isActions: true,
      cell: (upload) => (
        <Group gap="xs" wrap="nowrap" justify="flex-end">
          <Resume bucket={bucket} upload={upload} />
          <Abort bucket={bucket} upload={upload} />
        </Group>
      ),
    },
  ];
  return (
    <Loaded query={uploads}>
      {(all) =>
        all.length === 0 ? (
          <Empty icon={ArrowUpTrayIcon} title={words.none}>
            {words.noneLead}
          </Empty>
        ) : (
          <Stack>
            <Text c="dimmed">{words.lead}</Text>
            <DataTable columns={columns} rows={all} keyOf={({ upload_id: id }) => id} />
          </Stack>
        )
      }
    </Loaded>
  );
}

/** Browsers do not keep the file: the user chooses it again, and its bytes are compared. */
function Resume({ bucket, upload: { upload_id: uploadId, name } }: { bucket: string; upload: OpenUpload }) {
  return (
    <FileButton onChange={(file) => file !== null && uploadQueue.add([{ file, bucket, name, uploadId }])}>
      {(props) => (
        <Button size="compact-sm" variant="default" aria-label={words.resumeOne(sayName(name))} {...props}>
          {words.resume}
        </Button>
      )}
    </FileButton>
  );
}

function Abort({ bucket, upload: { upload_id: id, name, size } }: { bucket: string; upload: OpenUpload }) {
  const [isAsked, setAsked] = useState(false);
  const abort = useMutation({
    mutationFn: () => cloud.abortUpload(bucket, id),
    meta: { shown: true, invalidates: [uploadsQuery(bucket)] },
    onSuccess: () => {
      setAsked(false);
      showDone(words.aborted(sayName(name)));
    },
  });
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        aria-label={words.abortOne(sayName(name))}
        onClick={() => setAsked(true)}
      >
        {words.abort}
      </Button>
      <Confirm
        isOpen={isAsked}
        title={words.abortAsk}
        action={words.abort}
        isBusy={abort.isPending}
        error={abort.error}
        onConfirm={() => abort.mutate()}
        onClose={() => setAsked(false)}
      >
        {sayName(name)}
        <br />
        {words.abortLead(sayBytes(size))}
      </Confirm>
    </>
  );
}
