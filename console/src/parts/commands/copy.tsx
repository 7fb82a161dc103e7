/** Copies a text to the clipboard, also over http, or saves it as a file. */
import { CheckIcon, ClipboardIcon } from '@heroicons/react/24/outline';
import { ActionIcon, Tooltip } from '@mantine/core';
import { type ComponentType, type SVGProps, useState } from 'react';
import { text } from '../../texts/text.ts';

/** Longer, because the user has to act. */
const NOT_COPIED_MS = 6000;
const COPIED_MS = 1500;

export async function copyText(value: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(value);
  const area = document.createElement('textarea');
  area.value = value;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  if (!isCopied) throw new Error('not copied');
}

interface CopyIconProps {
  readonly value: string;
  readonly label: string;
  /** Default: a clipboard. */
  readonly icon?: ComponentType<SVGProps<SVGSVGElement>>;
}

/** A small copy button. Its label briefly shows the result. */
export function CopyIcon({ value, label, icon: Icon = ClipboardIcon }: CopyIconProps) {
  const [outcome, setOutcome] = useState<'copied' | 'notCopied'>();
  const tell = (what: typeof outcome, ms: number) => {
    setOutcome(what);
    setTimeout(() => setOutcome(undefined), ms);
  };
  const copy = () =>
    copyText(value).then(
      () => tell('copied', COPIED_MS),
      () => tell('notCopied', NOT_COPIED_MS),
    );
  const says = outcome === undefined ? label : text.shell[outcome];
  return (
    <Tooltip label={says}>
      <ActionIcon variant="subtle" color="gray" size={24} aria-label={says} onClick={copy}>
        {outcome === 'copied' ? <CheckIcon width={16} /> : <Icon width={16} />}
      </ActionIcon>
    </Tooltip>
  );
}

interface SavedText {
  readonly name: string;
  readonly type: string;
  readonly content: string;
}

/** Saves a text as a file. */
export function saveText({ name, type, content }: SavedText): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 0);
}
