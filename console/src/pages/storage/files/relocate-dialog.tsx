/** Dialogs to rename, move and copy: target, and whether to replace existing objects. */

import { NativeSelect, Stack, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { useCloudForm } from '../../../parts/cloud-form.ts';
import { CallSample } from '../../../parts/commands/call-sample.tsx';
import { Confirm, FormModal } from '../../../parts/forms/dialog.tsx';
import { showDone, showRefusal } from '../../../parts/notices.tsx';
import { sayName } from '../../../parts/say.ts';
import { text } from '../../../texts/text.ts';
import { bucketsQuery } from '../queries.ts';
import { changedIn } from './delete-restore.tsx';
import type { Target } from './many.ts';
import {
  baseOf,
  folderOf,
  type Outcome,
  parentOf,
  type Relocation,
  relocate,
  type Step,
  stepsOf,
} from './relocating.ts';

/** A requested action. */
export interface Wish {
  readonly kind: Relocation;
  readonly targets: readonly Target[];
  /** The target folder, if known: then the dialog asks only about name conflicts. */
  readonly to?: string;
}

interface RelocateDialogProps extends Wish {
  readonly bucket: string;
  /** The displayed folder. */
  readonly prefix: string;
  /** Called after changes. */
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** Maximum names listed in a question. */
const NAMES_SHOWN = 3;

export function RelocateDialog(props: RelocateDialogProps) {
  const { kind, bucket, onClose } = props;
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const settle = useSettle(props, setConflict);
  return (
    <>
      {props.to === undefined ? (
        <PlaceForm {...props} onSettled={settle} />
      ) : (
        <AtOnce {...props} to={props.to} onSettled={settle} />
      )}
      {conflict !== null && (
        <ReplaceQuestion
          conflict={conflict}
          isMove={kind !== 'copy'}
          from={bucket}
          onSettled={settle}
          onClose={onClose}
        />
      )}
    </>
  );
}

interface Conflict {
  readonly bucket: string;
  readonly taken: readonly Step[];
}

/** An outcome, with the target bucket. */
interface Settled extends Outcome {
  readonly bucket: string;
  readonly hasReplaced: boolean;
}

/** Reports the outcome, and asks about conflicts. */
function useSettle(props: RelocateDialogProps, ask: (conflict: Conflict) => void) {
  const { kind, bucket: from, targets, onDone, onClose } = props;
  const undo = useMutation({
    mutationFn: async ({ done }: Settled) => {
      const back = done.map(({ id, from: to, to: was }) => ({ id, from: was, to }));
      const { taken, failure } = await relocate(back, { bucket: from, isMove: true, overwrite: false });
      if (failure !== undefined) throw failure;
      if (taken.length > 0) showDone(text.storage.relocate.undoneNot(taken.length));
    },
    meta: { invalidates: [{ queryKey: ['files'] }, bucketsQuery] },
  });
  return (settled: Settled) => {
    const { done, taken, failure, bucket, hasReplaced } = settled;
    if (done.length > 0) {
      onDone();
      const [first] = targets;
      const isOne = targets.length === 1 && first !== undefined;
      const what = sayName(isOne ? baseOf(first.name) : text.storage.files(done.length));
      const mayGoBack = kind !== 'copy' && !hasReplaced;
      showDone(text.storage.relocate.done[kind](what), mayGoBack ? () => undo.mutate(settled) : undefined);
    }
    if (failure !== undefined) showRefusal(failure);
    if (taken.length > 0) ask({ bucket, taken });
    else onClose();
  };
}

type Settle = (settled: Settled) => void;

/** Runs immediately, and reports afterwards. */
function AtOnce(props: RelocateDialogProps & { readonly to: string; readonly onSettled: Settle }) {
  const { kind, targets, bucket, to, onSettled, onClose } = props;
  const going = useMutation({
    mutationFn: async () => {
      const [first] = targets;
      const name = targets.length === 1 && first !== undefined ? baseOf(first.name) : '';
      const steps = await stepsOf(bucket, targets, { bucket, folder: to, name });
      return relocate(steps, { bucket, isMove: kind !== 'copy', overwrite: false });
    },
    meta: { invalidates: [{ queryKey: ['files'] }, bucketsQuery] },
    onSuccess: (outcome) => onSettled({ ...outcome, bucket, hasReplaced: false }),
    onError: onClose,
  });
  const { mutate } = going;
  const isBegun = useRef(false);
  useEffect(() => {
    if (isBegun.current) return;
    isBegun.current = true;
    mutate();
  }, [mutate]);
  return null;
}

function PlaceForm(props: RelocateDialogProps & { readonly onSettled: Settle }) {
  const { kind, targets, bucket, prefix, onSettled, onClose } = props;
  const [first] = targets;
  const isOne = targets.length === 1 && first !== undefined;
  const { data: buckets = [] } = useQuery(bucketsQuery);
  const folder = kind === 'rename' && isOne ? parentOf(first.name) : prefix;
  const form = useCloudForm({
    values: { bucket, folder, name: isOne ? baseOf(first.name) : '' },
    send: async (place) => {
      const steps = await stepsOf(bucket, targets, place);
      const options = { bucket: place.bucket, isMove: kind !== 'copy', overwrite: false };
      const outcome = await relocate(steps, options);
      // The form shows the error if there is nothing else to report.
      if (outcome.done.length + outcome.taken.length === 0 && outcome.failure !== undefined)
        throw outcome.failure;
      return { ...outcome, bucket: place.bucket, hasReplaced: false };
    },
    invalidates: [{ queryKey: ['files'] }, bucketsQuery],
    onDone: onSettled,
  });
  const { values } = form;
  const words = text.storage.relocate;
  const names = [...new Set([bucket, ...buckets.map(({ name }) => name)])];
  const isThere =
    values.bucket === bucket && targets.every(({ name }) => parentOf(name) === folderOf(values.folder));
  const isSame = isThere && (!isOne || values.name === baseOf(first.name));
  return (
    <FormModal
      isOpen
      title={words.title[kind](sayName(isOne ? baseOf(first.name) : text.storage.items(targets.length)))}
      action={words.action[kind]}
      form={form}
      isIncomplete={isSame || (isOne && values.name.trim() === '')}
      onClose={onClose}
    >
      {kind !== 'rename' && (
        <Stack>
          <NativeSelect label={text.storage.bucket} data={names} {...form.text('bucket')} />
          <TextInput
            data-autofocus
            label={words.folder}
            description={words.folderHint}
            spellCheck={false}
            autoCapitalize="none"
            {...form.text('folder')}
          />
        </Stack>
      )}
      {isOne && (
        <TextInput
          data-autofocus={kind === 'rename' || undefined}
          label={text.storage.name}
          required
          withAsterisk={false}
          spellCheck={false}
          autoCapitalize="none"
          onFocus={({ currentTarget }) => kind === 'rename' && selectStem(currentTarget)}
          {...form.text('name')}
        />
      )}
      {isOne && first.id !== undefined && (
        <CallSample
          operation={kind === 'copy' ? 'copyObject' : 'moveObject'}
          args={[first.id, { bucket: values.bucket, name: `${folderOf(values.folder)}${values.name}` }]}
        />
      )}
    </FormModal>
  );
}

/** Typing replaces the name, and keeps the extension. */
function selectStem(field: HTMLInputElement): void {
  const dot = field.value.lastIndexOf('.');
  field.setSelectionRange(0, dot > 0 ? dot : field.value.length);
}

interface ReplaceQuestionProps {
  readonly conflict: Conflict;
  readonly isMove: boolean;
  /** The source bucket. */
  readonly from: string;
  readonly onSettled: Settle;
  readonly onClose: () => void;
}

function ReplaceQuestion({ conflict, isMove, from, onSettled, onClose }: ReplaceQuestionProps) {
  const { bucket, taken } = conflict;
  const words = text.storage.relocate;
  const { data: buckets = [] } = useQuery(bucketsQuery);
  const isVersioned = buckets.find(({ name }) => name === bucket)?.versioning === true;
  const replace = useMutation({
    mutationFn: () => relocate(taken, { bucket, isMove, overwrite: true }),
    meta: { shown: true, invalidates: [...changedIn(from), ...changedIn(bucket)] },
    onSuccess: (outcome) => onSettled({ ...outcome, bucket, hasReplaced: true }),
  });
  const shown = taken.slice(0, NAMES_SHOWN).map(({ to }) => sayName(to));
  return (
    <Confirm
      isOpen
      title={words.replaceAsk(taken.length)}
      action={words.replace}
      isBusy={replace.isPending}
      error={replace.error}
      onConfirm={() => replace.mutate()}
      onClose={onClose}
    >
      {words.isTaken(bucket, shown, taken.length - shown.length)}{' '}
      {isVersioned ? words.replacedKept : words.replacedForGood}
    </Confirm>
  );
}
