/** Copies a text; also where the browser gives the clipboard to https only. */

import { CheckIcon, ClipboardIcon } from '@heroicons/react/24/outline';
import { ActionIcon, Tooltip } from '@mantine/core';
import { useState } from 'react';
import { text } from '../texts/text.ts';

async function copyText(value: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(value);
  const area = document.createElement('textarea');
  area.value = value;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  if (!isCopied) throw new Error(text.shell.notCopied);
}

function useCopied(value: string) {
  const [isCopied, setCopied] = useState(false);
  const copy = () =>
    copyText(value).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    });
  return { isCopied, copy };
}

/** A small button beside a value. */
export function CopyIcon({ value, label }: { value: string; label: string }) {
  const { isCopied, copy } = useCopied(value);
  const says = isCopied ? text.shell.copied : label;
  return (
    <Tooltip label={says}>
      <ActionIcon variant="subtle" color="gray" size="sm" aria-label={says} onClick={copy}>
        {isCopied ? <CheckIcon width={16} /> : <ClipboardIcon width={16} />}
      </ActionIcon>
    </Tooltip>
  );
}
