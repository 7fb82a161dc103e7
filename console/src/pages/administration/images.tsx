/** Disk images that machines are made from. */

import { CpuChipIcon } from '@heroicons/react/24/outline';
import {
  Button,
  FileInput,
  Group,
  Progress,
  SegmentedControl,
  Stack,
  Text,
  TextInput,
  Title,
} from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { AdminImage, NewImage } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { Confirm, FormModal } from '../../parts/forms/dialog.tsx';
import { Mark } from '../../parts/mark.tsx';
import { Empty, Loaded } from '../../parts/page.tsx';
import { sayBytes } from '../../parts/say.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { StateBadge } from '../../parts/tables/state-badge.tsx';
import { knownImagesText } from '../../texts/known-images-text.ts';
import { text } from '../../texts/text.ts';
import { KnownImages } from './known-images.tsx';
import { imagesQuery, knownImagesQuery } from './queries.ts';

const { administration } = text;
const TONES = { ready: 'good', importing: 'moving', failed: 'bad' } as const;

export function Images() {
  const images = useQuery(imagesQuery);
  const [isAdding, setAdding] = useState(false);
  return (
    <Stack>
      <KnownImages />
      <Group justify="space-between" mt="md">
        <Title order={2} size="h4">
          {knownImagesText.others}
        </Title>
        <Button onClick={() => setAdding(true)}>{administration.addImage}</Button>
      </Group>
      <Loaded query={images}>
        {(all) =>
          all.length === 0 ? (
            <Empty icon={CpuChipIcon} title={administration.noImages}>
              {administration.noImagesLead}
            </Empty>
          ) : (
            <DataTable columns={COLUMNS} rows={all} keyOf={({ image_id: id }) => id} />
          )
        }
      </Loaded>
      {isAdding && <ImageForm onClose={() => setAdding(false)} />}
    </Stack>
  );
}

const saySize = (bytes: number | null) => (bytes === null ? '–' : sayBytes(bytes));
const COLUMNS: readonly Column<AdminImage>[] = [
  { name: administration.image, cell: (image) => <Name image={image} /> },
  { name: administration.state, cell: (image) => <State image={image} /> },
  { name: administration.storage, isNumber: true, cell: ({ size }) => saySize(size) },
  { name: administration.disk, isNumber: true, cell: ({ virtual_size: size }) => saySize(size) },
  { name: administration.source, isMono: true, cell: ({ source }) => source },
  { name: administration.actions, isActions: true, cell: (image) => <Remove image={image} /> },
];

function Name({ image }: { image: AdminImage }) {
  return (
    <>
      <Mark name={image.name} />
      {image.name}
      <Text className="mono" size="xs" c="dimmed">
        {image.image_id}
      </Text>
    </>
  );
}

function State({ image: { state, state_reason: reason } }: { image: AdminImage }) {
  return (
    <>
      <StateBadge tone={TONES[state]} word={administration.imageStates[state]} />
      {reason !== null && <Text size="xs">{reason.message}</Text>}
    </>
  );
}

function Remove({ image }: { image: AdminImage }) {
  const [isAsking, setAsking] = useState(false);
  const remove = useMutation({
    mutationFn: () => cloud.adminDeleteImage(image.image_id),
    meta: { shown: true, invalidates: [imagesQuery, knownImagesQuery] },
  });
  return (
    <>
      <Button size="compact-sm" variant="default" onClick={() => setAsking(true)}>
        {administration.delete}
      </Button>
      <Confirm
        isOpen={isAsking}
        title={administration.deleteAsk(image.name)}
        action={administration.delete}
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate()}
        onClose={() => setAsking(false)}
      >
        {administration.deleteImageLead}
      </Confirm>
    </>
  );
}

function ImageForm({ onClose }: { onClose: () => void }) {
  const [way, setWay] = useState<string>('url');
  const [percent, setPercent] = useState(0);
  const form = useCloudForm({
    values: { name: '', url: '', file: null as File | null },
    send: ({ name, url, file }) => {
      if (way === 'url') return cloud.adminAddImage({ name, url });
      if (file === null) throw new Error(administration.chooseFile);
      const onProgress = (sent: number) => setPercent((sent / file.size) * 100);
      return cloud.adminUploadImage({ file, name }, { onProgress });
    },
    invalidates: [imagesQuery],
    onDone: onClose,
  });
  const { name, url, file } = form.values;
  return (
    <FormModal
      isOpen
      title={administration.addImage}
      action={administration.addImage}
      form={form}
      onClose={onClose}
    >
      <TextInput
        data-autofocus
        label={administration.image}
        required
        withAsterisk={false}
        {...form.text('name')}
      />
      <SegmentedControl
        aria-label={administration.source}
        value={way}
        onChange={setWay}
        data={[
          { value: 'url', label: administration.fromUrl },
          { value: 'file', label: administration.fromFile },
        ]}
      />
      {way === 'url' ? (
        <TextInput
          label={administration.imageUrl}
          description={administration.imageLead}
          required
          withAsterisk={false}
          {...form.text('url')}
        />
      ) : (
        <FileInput
          label={administration.imageFile}
          description={administration.imageLead}
          placeholder={administration.chooseFile}
          {...form.of('file')}
        />
      )}
      <ImageCall body={{ name, url }} file={way === 'url' ? undefined : (file?.name ?? 'disk.qcow2')} />
      {form.isBusy && way === 'file' && <Progress value={percent} aria-label={administration.uploading} />}
    </FormModal>
  );
}

function ImageCall({ body, file }: { body: NewImage; file: string | undefined }) {
  if (file === undefined) {
    return <CallSample operation="adminAddImage" args={[body]} />;
  }
  const { name } = body;
  return <CallSample operation="adminUploadImage" args={[{ file: `@${file}`, name }]} />;
}
