/** Links within the console that look like Mantine's; `to`, `params` and `search` are checked. */
import { Anchor, type AnchorProps, Button, type ButtonProps } from '@mantine/core';
import { createLink } from '@tanstack/react-router';
import type { AnchorHTMLAttributes, Ref } from 'react';

type Native = Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'color'> & {
  readonly ref?: Ref<HTMLAnchorElement>;
};

export const AnchorLink = createLink((props: Native & AnchorProps) => <Anchor {...props} />);

export const ButtonLink = createLink((props: Native & ButtonProps) => <Button component="a" {...props} />);
