from PIL import Image

img = Image.new("RGB", (400, 300), (255, 0, 0))
img.paste((0, 0, 255), (200, 0, 400, 300))
print("Original size:", img.size)
thumb = img.resize((100, 75), Image.LANCZOS)
thumb.save("thumb.png")
print("New size:", Image.open("thumb.png").size, thumb.getpixel((10, 10)), thumb.getpixel((90, 70)))
