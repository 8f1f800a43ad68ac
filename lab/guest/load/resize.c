/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize SLOT CPUS: best-effort work that makes thumbnails of an image in memory, over and over, by
 * a box filter (background.h). A unit is one row of a thumbnail, about 0.4 ms in the lab.
 */
#include "background.h"

enum { WIDTH = 512, HEIGHT = 256, COLOURS = 3, BOX = 8, SEED = 1 };

static uint8_t image[HEIGHT][WIDTH][COLOURS], thumbnail[HEIGHT / BOX][WIDTH / BOX][COLOURS];

static void make_image(void)
{
	uint8_t *bytes = &image[0][0][0];
	uint32_t x = SEED;

	for (size_t i = 0; i < sizeof(image); i++) {
		x = x * 1664525 + 1013904223;
		bytes[i] = x >> 24;
	}
}

static uint8_t box_mean(int row, int column, int colour)
{
	unsigned sum = 0;

	for (int y = 0; y < BOX; y++)
		for (int x = 0; x < BOX; x++)
			sum += image[row * BOX + y][column * BOX + x][colour];
	return sum / (BOX * BOX);
}

static void resize_row(void)
{
	static int row;

	for (int column = 0; column < WIDTH / BOX; column++)
		for (int colour = 0; colour < COLOURS; colour++)
			thumbnail[row][column][colour] = box_mean(row, column, colour);
	/* Nobody reads the thumbnail: without this the compiler would not make it. */
	__asm__ volatile("" ::"r"(thumbnail) : "memory");
	row = (row + 1) % (HEIGHT / BOX);
}

int main(int argc, char **argv)
{
	make_image();
	work(argc, argv, resize_row);
}
